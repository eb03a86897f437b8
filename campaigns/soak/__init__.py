"""Load through all doors while things fail; at the end every acknowledged background job is accounted for.

python -m campaigns.soak --minutes 30 --seed 7
"""
