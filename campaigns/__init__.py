"""Campaigns that look for faults: `fuzz` sends mutated bytes to codecs and doors, `soak` runs load under faults.

Both are seeded. `make fuzz` and `make soak` run them; docs/campaigns.md says what they check.
"""
