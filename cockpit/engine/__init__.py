"""One engine, two front ends: it connects hosts, keeps samples, runs and incidents, and knows no screen."""
