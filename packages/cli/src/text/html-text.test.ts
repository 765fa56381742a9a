import { describe, expect, it } from 'vitest'
import { htmlToText } from './html-text.ts'

describe('htmlToText', () => {
  it('puts tables in columns, also those without every end tag', () => {
    const table = '<table class="x"><tr><th>name<th>units</tr><tr><td>a</td><td>1200</td></tr></table>'
    expect(htmlToText(`<div>${table}</div>`)).toBe('name  units\n   a   1200')
    expect(htmlToText('<table></table>')).toBe('')
  })

  it('gives blocks lines of their own, and decodes what is written by name or number', () => {
    expect(htmlToText('<h1>One &amp; two</h1><p>a<br>b &#228;&#xe4; &unknown; &#x110000;</p>')).toBe(
      'One & two\na\nb ää &unknown; &#x110000;',
    )
  })

  it('leaves out what is not to be read', () => {
    expect(htmlToText('<style>b { }</style><script>x()</script><!-- no -->yes <b>and</b> <i>no</i>')).toBe('yes and no')
  })
})
