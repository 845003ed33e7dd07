"""nano: an LFM2 assistant of a few million parameters that calls tools."""
