"""What is public of a table: names, types, how it is written, what is declared of its columns.

The core reads cells and asks here what to call them. No function here is given a cell.
"""
