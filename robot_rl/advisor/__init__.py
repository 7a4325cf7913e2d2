"""How well the failures of a policy can be predicted: the rules of `robot_rl.calling`, on recorded episodes."""
