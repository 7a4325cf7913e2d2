"""A table of runs over tasks and seeds: started, resumed and summed up."""
