// Package reconciler is what the controllers of all kinds of objects share, and knows no kind: what is remembered of an object.
package reconciler
