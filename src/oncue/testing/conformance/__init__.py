"""Public suites that every implementation of a seam passes: subclass one in a test module and give it its fixtures.

The classes are async tests: mark the module with `pytest.mark.anyio`, and give pytest's assertions their words with
`pytest.register_assert_rewrite("oncue.testing.conformance")` before the first import.
"""
