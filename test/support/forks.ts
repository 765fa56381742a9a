/** Python that prints how many processes it may have at once, itself included. Leaves none. */
export const FORKS = `
import os, signal
children = []
try:
    while True:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError:
    print(len(children) + 1)
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
`
