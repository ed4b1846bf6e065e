"""What the held-out scores must reach: the measure and the share."""

TARGETS = {"shapes and colours": ("named", 0.95), "digits in pictures": ("exact", 0.90), "spoken digits": ("word accuracy", 0.95),
           "spoken words": ("word accuracy", 0.85), "sums": ("exact", 0.95), "tools": ("valid", 0.95), "json": ("valid", 0.98)}
