"""What every package needs and none owns: times, pacing, TLS contexts, shortened texts.

It stands below all others and imports the standard library alone (D311).
"""
