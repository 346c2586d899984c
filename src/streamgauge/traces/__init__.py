"""Where streams come from: seeded and labelled generators, and files. Stands alone."""
