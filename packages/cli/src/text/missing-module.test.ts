import { expect, it } from 'vitest'
import { missingModule } from './missing-module.ts'

const lacks = (module: string) => missingModule({ name: 'ModuleNotFoundError', message: `No module named '${module}'` })

it('names the template that has a module', () => {
  expect(lacks('pandas')).toBe('the template data has pandas: --template data')
  expect(lacks('matplotlib.pyplot')).toBe('the template data has matplotlib: --template data')
})

it('names both ways to bring another', () => {
  expect(lacks('Flask_Login')).toBe(
    'there is no module Flask_Login here. One of yours: --with Flask_Login.py. One of Debian: airlock template build NAME --package python3-flask-login, then --template NAME',
  )
})

it('says nothing of another error, and of words that name no module', () => {
  expect(missingModule({ name: 'ImportError', message: "No module named 'x'" })).toBeUndefined()
  expect(missingModule({ name: 'ModuleNotFoundError', message: 'none' })).toBeUndefined()
})
