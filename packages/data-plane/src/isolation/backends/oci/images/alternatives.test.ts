import { expect, it } from 'vitest'
import { readAlternatives } from './alternatives.ts'

it('reads what a script would install, over broken lines', () => {
  const script = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  update-alternatives --install /usr/lib/x/libblas.so.3 \\
     libblas.so.3 /usr/lib/x/blas/libblas.so.3 10 \\
     --slave /usr/include/cblas.h cblas.h /usr/include/x/cblas.h
  update-alternatives --quiet --install /usr/bin/awk awk /usr/bin/mawk 5 || true
fi`
  expect(readAlternatives(script)).toEqual([
    ['--install', '/usr/lib/x/libblas.so.3', 'libblas.so.3', '/usr/lib/x/blas/libblas.so.3', '10'].concat([
      '--slave',
      '/usr/include/cblas.h',
      'cblas.h',
      '/usr/include/x/cblas.h',
    ]),
    ['--install', '/usr/bin/awk', 'awk', '/usr/bin/mawk', '5'],
  ])
})

it.each([
  'update-alternatives --install "$link" x /usr/bin/x 5',
  'update-alternatives --install /usr/bin/x $(name) /usr/bin/x 5',
  'update-alternatives --install /usr/bin/../../etc/x x /usr/bin/x 5',
  'update-alternatives --install /usr/bin/x ../x /usr/bin/x 5',
  'update-alternatives --install /usr/bin/x x /usr/bin/x high',
  'update-alternatives --install /usr/bin/x x /usr/bin/x 5 --slave /usr/bin/y',
  'update-alternatives --remove x /usr/bin/x',
])('leaves out what only a shell could understand, or what is not plain: %s', (line) => {
  expect(readAlternatives(line)).toEqual([])
})
