"""WIP"""


def table(folder): ...
def text(t, summary=False):
    return ""
