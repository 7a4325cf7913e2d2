def register_third_party_plugins():
    pass
