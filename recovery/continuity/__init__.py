"""Did the training really resume: log readers, the before/after statistic, its verdict."""
