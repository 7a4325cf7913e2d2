def make_robot_from_config(config):
    from lerobot.robots.scripted import Scripted

    return Scripted(config)
