import { useEffect, useRef, useState } from 'preact/hooks'

const HOLD_MS = 1_200

interface HoldButtonProps {
  readonly children: string
  readonly disabled: boolean
  readonly onHeld: () => void
}

/** Acts when it was held, by pointer, Enter or Space: no slip does. */
export function HoldButton({ children, disabled, onHeld }: HoldButtonProps) {
  const [isHeld, setHeld] = useState(false)
  const timer = useRef<number | undefined>(undefined)
  const stop = (): void => {
    clearTimeout(timer.current)
    timer.current = undefined
    setHeld(false)
  }
  const start = (): void => {
    if (timer.current !== undefined || disabled) return
    setHeld(true)
    timer.current = window.setTimeout(() => {
      stop()
      onHeld()
    }, HOLD_MS)
  }
  useEffect(() => stop, [])
  const isKey = ({ key }: KeyboardEvent): boolean => key === 'Enter' || key === ' '
  return (
    <button
      type="button"
      class={`hold ${isHeld ? 'held' : ''}`}
      disabled={disabled}
      onPointerDown={start}
      onPointerUp={stop}
      onPointerLeave={stop}
      onPointerCancel={stop}
      onBlur={stop}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (!isKey(event)) return
        event.preventDefault()
        if (!event.repeat) start()
      }}
      onKeyUp={(event) => isKey(event) && stop()}
    >
      <span>{isHeld ? 'Keep holding…' : children}</span>
    </button>
  )
}
