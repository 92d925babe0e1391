// Package parts knows each real part: how it is configured, started, known to answer, and ended. It runs inside the
// lab's root, as the supervisor's; one file per part.
package parts
