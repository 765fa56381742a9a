/** A piece of a word. Quoted ones are neither split nor expanded further. */
export type Part =
  | { readonly kind: 'text'; readonly text: string; readonly isQuoted: boolean }
  | {
      readonly kind: 'parameter'
      readonly name: string
      /** What `${name…}` does with it: empty, `:-`, `#`, `[`, … */
      readonly operator: string
      readonly operand: Word
      readonly isQuoted: boolean
    }
  | { readonly kind: 'output'; readonly script: Script; readonly isQuoted: boolean }
  /** `<(…)` or `>(…)` */
  | { readonly kind: 'process'; readonly script: Script }
  /** `$((…))`: a number, and what is run for it. */
  | { readonly kind: 'arithmetic'; readonly word: Word }

export type Word = readonly Part[]

export interface Redirect {
  readonly operator: string
  /** Where to, or the text of a here-document. */
  target: Word
}

export interface Assignment {
  readonly name: string
  readonly value: Word
  /** `a=(x y)` */
  readonly items: readonly Word[] | undefined
  readonly isAppended: boolean
}

export interface SimpleCommand {
  readonly kind: 'simple'
  readonly assignments: readonly Assignment[]
  readonly words: readonly Word[]
  readonly redirects: readonly Redirect[]
}

export type Command =
  | SimpleCommand
  | {
      readonly kind: 'group'
      readonly body: Script
      readonly isSubshell: boolean
      readonly redirects: readonly Redirect[]
    }
  | {
      readonly kind: 'loop'
      /** Absent in `for ((;;))`. */
      readonly condition: Script | undefined
      readonly isUntil: boolean
      /** What is run for an arithmetic loop. */
      readonly words: readonly Word[]
      readonly body: Script
      readonly redirects: readonly Redirect[]
    }
  | {
      readonly kind: 'for'
      readonly name: string
      /** Absent: the positional parameters. */
      readonly items: readonly Word[] | undefined
      readonly body: Script
      readonly redirects: readonly Redirect[]
    }
  /** `if` and `case`: one of the branches, after what is run to choose. */
  | {
      readonly kind: 'branches'
      readonly choice: Script
      readonly words: readonly Word[]
      readonly branches: readonly Script[]
      readonly redirects: readonly Redirect[]
    }
  /** `[[ … ]]` and `(( … ))` */
  | { readonly kind: 'test'; readonly words: readonly Word[]; readonly redirects: readonly Redirect[] }
  | { readonly kind: 'function'; readonly name: string; readonly body: Command }

export interface Pipeline {
  readonly commands: readonly Command[]
  readonly isBackground: boolean
  /** It runs only when what stands before it failed. */
  readonly isAfterFailure: boolean
}

export type Script = readonly Pipeline[]
