package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/ledger"
)

// step pushes the next artifact of a key and reports whether the pass goes on.
func (p *Pusher) step(ctx context.Context, key string) (more bool, err error) {
	item, err := p.next(ctx, key)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, p.passes.end(key)
	}
	if err != nil {
		return false, err
	}
	done, err := p.push(ctx, key, item)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if errors.Is(err, ErrGone) {
		_ = p.passes.end(key)
		return false, nil
	}
	what, w := item.What+" to "+item.Reference, item.Written
	if e, is := errors.AsType[*artifact.Unusable](err); is && e.Reason == artifact.ReasonUnsuitable {
		w.Push, w.Note = ledger.NotPushed, what+": "+e.Message
		err = p.record(ctx, item.Run, w)
		if err == nil {
			p.Log.Warn().Str("job", key).Msg("not pushed: " + w.Note)
			p.Observer.NotPushed(item.Run, w.Note)
		}
		return err == nil, err
	}
	if err != nil {
		p.passes.failed(key, w.Number, fmt.Errorf("%s: %w", what, err))
		return true, nil
	}
	w.Push, w.Size, w.Digest = ledger.Pushed, done.Size, done.Digest
	if err := p.record(ctx, item.Run, w); err != nil {
		return false, err
	}
	p.Log.Debug().Str("job", key).Str("artifact", item.Reference).Msg("pushed")
	p.Observer.Pushed(item.Run, done.Size)
	return true, nil
}

func (p *Pusher) record(ctx context.Context, run ledger.Run, w ledger.Written) error {
	return p.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.SetWritten(run.UID, run.Attempt, w) })
}

// push pushes one artifact.
func (p *Pusher) push(ctx context.Context, key string, item Item) (artifact.Pushed, error) {
	configs, digest, err := p.credentials(ctx, item)
	if err != nil || len(configs) > 0 {
		p.logins.use(key, login{item, digest})
	}
	if err != nil {
		return artifact.Pushed{}, err
	}
	names, err := p.Store.Matching(ctx, item.At, item.Dir, item.Path, artifact.MaxFiles+1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return artifact.Pushed{}, fmt.Errorf("list the files: %w", err)
	}
	var files []artifact.Upload
	for _, name := range names {
		files = append(
			files,
			artifact.Upload{
				Name: name,
				Open: func() (io.ReadCloser, error) { return p.Store.OpenAt(item.At, item.Dir, name) },
			},
		)
	}
	defer p.naming.end(key)
	last := func(digest string) error {
		p.naming.begin(key) // before it is asked whether it is wanted
		if err := p.stillWanted(ctx, item); err != nil || item.Owner == "" {
			return err
		}
		w := item.Written
		w.Digest = digest
		return p.record(ctx, item.Run, w)
	}
	done, err := p.Registries.Push(
		ctx,
		artifact.Target{Reference: item.Reference, Namespace: item.Run.Namespace, Owner: item.Owner},
		files,
		last,
		configs...)
	if errors.Is(err, fs.ErrNotExist) { // it may have been deleted meanwhile
		err = errors.Join(p.stillWanted(ctx, item), err)
	}
	return done, err
}

// stillWanted returns ErrGone if something newer has taken the place of an item's run, or what it is of no longer
// exists.
func (p *Pusher) stillWanted(ctx context.Context, item Item) error {
	wanted, err := ledger.Get(ctx, p.Ledger, func(tx *ledger.Tx) (bool, error) {
		return p.Subject.Wanted(tx, item.Run)
	})
	if err == nil && !wanted {
		return ErrGone
	}
	if err == nil {
		_, err = p.Credentials(ctx, item)
	}
	return err
}
