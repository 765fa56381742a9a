# Prints where a sparse file has data: a line for each piece, with its offset and its length.
import errno
import os
import sys

file = os.open(sys.argv[1], os.O_RDONLY)
end = os.fstat(file).st_size
at = 0
while at < end:
    try:
        start = os.lseek(file, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        break  # Nothing but a hole follows.
    at = os.lseek(file, start, os.SEEK_HOLE)
    print(start, at - start)
