"""What is measured: Headrace, the raw loops and other job systems, each in one small module."""
