import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { needsData } from './needs-data.ts'

describe('code needs the template data', () => {
  it.each([
    'import numpy',
    'import os, numpy as np',
    'import os; import pandas',
    'from matplotlib import pyplot as plt',
    'import matplotlib.pyplot as plt',
    'def f():\n\tfrom PIL import Image',
    'if True: import scipy.stats',
    '%matplotlib inline',
    "__import__('pandas')",
    'importlib.import_module("numpy.linalg")',
  ])('for %j', (code) => expect(needsData(code)).toBe(true))

  it.each([
    'print(1)',
    'import os, sys',
    'import numpy_of_mine',
    'from . import x',
    '# import numpy',
    'x = "important"',
  ])('but not for %j', (code) => expect(needsData(code)).toBe(false))
})

describe('a file that is copied in', () => {
  let home: string
  beforeEach(() => void (home = mkdtempSync(join(tmpdir(), 'al-data-'))))
  afterEach(() => rmSync(home, { recursive: true }))

  it('counts, by itself or at the top of its directory, and one that is no Python does not', () => {
    mkdirSync(join(home, 'project'))
    writeFileSync(join(home, 'project', 'notes.txt'), 'import numpy')
    const project = join(home, 'project')
    expect(needsData('import tools', [project, join(home, 'absent.py')])).toBe(false)
    writeFileSync(join(project, 'tools.py'), 'import numpy')
    expect(needsData('import tools', [project])).toBe(true)
    expect(needsData('import tools', [join(project, 'tools.py')])).toBe(true)
  })
})
