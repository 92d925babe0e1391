// Package parts knows each real part: how it is configured, started, found ready, and ended. It runs inside the lab's
// root in the supervisor; one file per part.
package parts
