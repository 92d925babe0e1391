package reconciler

import "context"

// Staging returns a context for bringing an object's inputs, which may take minutes. It ends when the object is
// deleted, edited or suspended, or htcd is shut down.
func Staging[O Sent, S, K any](
	ctx context.Context, r *Reconciler[O, S, K], object O,
) (staging context.Context, end func()) {
	key := keyOf(object)
	staging, end = r.Stagings.Begin(ctx, key)
	if !Unchanged(object, r.Get(key)) { // it changed before it could be stopped
		r.Stagings.Stop(key)
	}
	return staging, end
}

// Outdate stops bringing the inputs of an object that has changed.
func Outdate[O Sent, S, K any](r *Reconciler[O, S, K], before, now O) {
	var none O
	if before != none && !Unchanged(before, now) {
		r.Stagings.Stop(keyOf(before))
	}
}
