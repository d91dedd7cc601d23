"""What is measured and how: suites, contenders, times, errors, and the records of them."""
