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

/** A fork bomb that goes on when it is refused: that of a shell may die of that, or die out where it gets little of a processor. */
export const FORK_BOMB = ['python3', '-c', 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'] as const
