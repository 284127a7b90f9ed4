"""Four libraries do the same tasks, and a table says what came out: ``python -m bench._comparison``.

One module for each library, with one function for each row of the table (``rows``). A function runs a
small program and returns what it saw, in a few words: nothing on the page is written from memory. The
same order service serves nearly all rows: an order is Open, is paid when the whole price is there, and
is delivered or cancelled.
"""
