import { expect, it } from 'vitest'
import { parseMounts } from './mounts.ts'

it('reads a list of mounts: what is written by others is told apart from what the mount itself allows', () => {
  const text = `122 124 7:0 /workspace /workspace rw,nosuid,nodev,noatime - ext4 /dev/loop0 rw,noinit_itable
129 124 0:47 / /tmp rw,nosuid,nodev,relatime shared:3 master:1 - tmpfs tmpfs rw,size=32768k,nr_inodes=65536
139 125 0:51 / /proc/acpi ro,relatime - tmpfs tmpfs rw,size=0k
140 124 8:1 /my\\040files /grants/my\\040files ro,relatime - ext4 /dev/sda1 rw
`
  expect(parseMounts(text)).toEqual([
    { device: '7:0', mountPoint: '/workspace', type: 'ext4', isWritable: true },
    { device: '0:47', mountPoint: '/tmp', type: 'tmpfs', isWritable: true },
    { device: '0:51', mountPoint: '/proc/acpi', type: 'tmpfs', isWritable: false },
    { device: '8:1', mountPoint: '/grants/my files', type: 'ext4', isWritable: false },
  ])
})
