"""A mirror for sites without internet: what it holds, how it is filled, checked and served."""
