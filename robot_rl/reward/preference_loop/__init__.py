"""RL-VLM-F beside a training: sessions of queries about pairs, the reward learned from them, and its delivery."""
