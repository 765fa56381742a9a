import type { Attack } from './attack.ts'

/** Paths and links: what is read and written outside of its own places. */
export const FILE_ATTACKS: readonly Attack[] = [
  {
    id: 'F01-host-file',
    attack: 'read a host file that everybody on the host may read',
    expected: 'ENOENT: only what is bound is there',
    program: `
paths = (os.environ['FLAG_WORLD'], '/tmp/shared/' + os.path.basename(os.environ['FLAG_WORLD']))
all_refused({path: attempt(lambda p=path: open(p).read()) for path in paths})
`,
    control: 'shared-host-directory',
  },
  {
    id: 'F01-links',
    attack:
      'write to the host programs and to our own, through links, linked parents, hard links, renames, /proc/self/root and descriptors',
    expected: 'EROFS, EXDEV, EACCES or EPERM',
    program: `
os.symlink('/usr/bin/env', 'link'); os.symlink('/usr/bin', 'parent'); os.symlink('/opt/airlock', 'ours'); os.symlink('/proc/self/root/etc', 'etc')
usr = os.open('/usr', os.O_RDONLY)
ways = {
    'link': attempt(lambda: open('link', 'w')), 'parent': attempt(lambda: open('parent/new', 'w')), 'ours': attempt(lambda: open('ours/guest.cjs', 'a')),
    'etc': attempt(lambda: open('etc/passwd', 'a')), 'hard link': attempt(lambda: os.link('/usr/bin/env', 'hard')),
    'hard link of the guest': attempt(lambda: os.link('/opt/airlock/guest.cjs', 'guest')), 'rename out': attempt(lambda: os.rename('/usr/bin/env', 'env')),
    'rename in': attempt(lambda: (open('mine', 'w').close(), os.rename('mine', '/usr/bin/mine'))), 'rename the mount': attempt(lambda: os.rename('/home/user', '/home/other')),
    'descriptor': attempt(lambda: os.open('../usr/bin/new', os.O_CREAT | os.O_WRONLY, dir_fd=usr)), 'root': attempt(lambda: open('/proc/self/root/usr/bin/new', 'w')),
    'chmod': attempt(lambda: os.chmod('/usr/bin/env', 0o777)), 'chown': attempt(lambda: os.chown('/workspace', 0, 0)), 'delete': attempt(lambda: os.unlink('/usr/bin/env')),
    'truncate': attempt(lambda: os.truncate('/usr/bin/env', 0)), 'steps': attempt(lambda: open('/run/steps/mine', 'w')),
}
all_refused(ways)
os.symlink(os.path.abspath('inside'), 'allowed')
control(attempt(lambda: open('allowed', 'w'))[0] == 'ok' and attempt(lambda: os.link('inside', 'second'))[0] == 'ok' and attempt(lambda: os.rename('second', 'third'))[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'F01-dotdot',
    attack: 'climb out by ..: from descriptors, from a directory that is moved away meanwhile, from a deleted one',
    expected: 'the climb ends at its own root',
    program: `
own = os.stat('/')
os.makedirs('a/b/c'); deep = os.open('a/b/c', os.O_RDONLY)
os.rename('a/b', 'moved'); attempt(lambda: os.rename('moved', '/home/user/moved-%d' % os.getpid()))
def top(fd):
    for _ in range(40):
        fd = os.open('..', os.O_RDONLY, dir_fd=fd)
    return os.fstat(fd)
gone = os.open('a', os.O_RDONLY); os.rmdir('a')
tops = [attempt(lambda f=fd: top(f))[1] for fd in (deep, gone, os.open('/tmp', 0), os.open('/proc/self', 0))]
outside = [found for found in tops if found is not None and (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino)]
reached(outside) if outside else refused('its own root')
control(tops[0] is not None)
`,
    control: 'itself',
  },
  {
    id: 'F07-attributes',
    attack:
      'attributes that mean something to overlays and to the kernel: trusted.overlay.*, security.capability, another of security.*',
    expected: 'EPERM, or not supported',
    program: `
open('file', 'w').close()
capability = struct.pack('<5I', 0x02000001, 0xffffffff, 0, 0xffffffff, 0)
ways = {attribute: attempt(lambda a=attribute, v=value: os.setxattr('file', a, v)) for attribute, value in
        (('trusted.overlay.opaque', b'y'), ('trusted.overlay.redirect', b'/'), ('security.capability', capability), ('security.airlock', b'x'))}
all_refused(ways)
control(attempt(lambda: os.chmod('file', 0o600))[0] == 'ok')
`,
    control: 'itself',
  },
  {
    id: 'F10-search',
    attack: 'read every file that can be read and look for the flags',
    expected: 'only the mark that it left itself',
    program: `
mark = b'a mark of its own'
place = os.path.abspath('mark')
open(place, 'wb').write(mark)
seen, found, marked = 0, [], False
for top in ('/etc', '/home', '/run', '/tmp', '/var', '/dev/shm', '/grants', '/opt', '/workspace', '/sys', '/proc/self', '/proc/1'):
    for base, dirs, names in os.walk(top):
        if seen > 20000: break
        for file in names:
            path = os.path.join(base, file); seen += 1
            try:
                if not os.path.isfile(path) or os.path.getsize(path) > 1 << 20: continue
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                data = os.read(fd, 1 << 20); os.close(fd)
            except OSError:
                continue
            if os.environ['FLAG_MARK'].encode() in data and not path.startswith('/proc'): found.append(path)
            if mark in data and path == place: marked = True
reached(found) if found else refused('not in %s files' % ('thousands of' if seen > 1000 else 'hundreds of' if seen > 100 else 'the few'))
control(marked)
`,
    control: 'itself',
  },
]
