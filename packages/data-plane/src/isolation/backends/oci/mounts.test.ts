import { expect, it } from 'vitest'
import { exposedBelow, parseMounts } from './mounts.ts'

it('reads a list of mounts: what is written by others is told apart from what the mount itself allows', () => {
  const text = `122 124 7:0 /workspace /workspace rw,nosuid,nodev,noatime - ext4 /dev/loop0 rw,noinit_itable
129 124 0:47 / /tmp rw,nosuid,nodev,relatime shared:3 master:1 - tmpfs tmpfs rw,size=32768k,nr_inodes=65536
139 125 0:51 / /proc/acpi ro,relatime - tmpfs tmpfs rw,size=0k
140 124 8:1 /my\\040files /grants/my\\040files ro,relatime - ext4 /dev/sda1 rw
`
  expect(parseMounts(text)).toEqual([
    { device: '7:0', mountPoint: '/workspace', type: 'ext4', flags: new Set(['rw', 'nosuid', 'nodev', 'noatime']) },
    { device: '0:47', mountPoint: '/tmp', type: 'tmpfs', flags: new Set(['rw', 'nosuid', 'nodev', 'relatime']) },
    { device: '0:51', mountPoint: '/proc/acpi', type: 'tmpfs', flags: new Set(['ro', 'relatime']) },
    { device: '8:1', mountPoint: '/grants/my files', type: 'ext4', flags: new Set(['ro', 'relatime']) },
  ])
})

it('finds mounts of the host that would be seen with what is bound, and could be written', () => {
  const text = `1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 8:2 / /usr rw - ext4 /dev/sda2 rw
3 2 8:3 / /usr/local rw,nosuid,nodev - ext4 /dev/sda3 rw
4 2 8:4 / /usr/share/closed ro,nosuid,nodev - ext4 /dev/sda4 rw
5 1 8:5 / /usrlocal rw - ext4 /dev/sda5 rw
`
  expect(exposedBelow(parseMounts(text), ['/usr', '/etc/ssl/certs'])).toEqual(['/usr/local'])
})
