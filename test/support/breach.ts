/** Thrown by a test when an attack succeeded. The gate fails at once: it gives such a test no second look. */
export class Breach extends Error {
  override readonly name = 'Breach'
}
