"""Generates parts of the template and the documentation from the code: `make generate`.

Markers of cog enclose each generated part. The first marker holds the call that prints it:

    # <<<cog options.parameters() >>>
    # <<<end>>>
"""
