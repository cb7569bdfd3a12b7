"""Writes the parts of the template and the documentation that follow from the code: `make generate`.

Markers of cog enclose such a part. The first one holds the call that prints it:

    # <<<cog options.parameters() >>>
    # <<<end>>>
"""
