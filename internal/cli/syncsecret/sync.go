package syncsecret

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
)

// Sync keeps one Secret equal to files.
type Sync struct {
	Secrets typedcorev1.SecretInterface
	Name    string
	Files   []File
	Labels  map[string]string // of a Secret that is created; those of an existing one are left alone
	Log     zerolog.Logger
	Now     func() time.Time
}

// Once writes what has changed, all keys in one request, and leaves other keys of the Secret alone. A Secret that
// somebody else changes at the same moment is read again.
func (s *Sync) Once(ctx context.Context) error {
	contents, err := read(s.Files)
	if err != nil {
		return err
	}
	for _, key := range sorted(contents) {
		if why := ending(contents[key], s.Now()); why != "" {
			s.Log.Warn().Str("secret", s.Name).Str("key", key).Msg(why)
		}
	}
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultBackoff, again, func() error { return s.write(ctx, contents) })
}

func (s *Sync) write(ctx context.Context, contents map[string][]byte) error {
	secret, err := s.Secrets.Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = s.Secrets.Create(
			ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.Labels}, Data: contents},
			metav1.CreateOptions{},
		)
		if err != nil {
			return fmt.Errorf("create Secret %s: %w", s.Name, err)
		}
		s.Log.Info().Str("secret", s.Name).Strs("keys", sorted(contents)).Msg("created")
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", s.Name, err)
	}
	changed := s.merge(secret, contents)
	if len(changed) == 0 {
		s.Log.Debug().Str("secret", s.Name).Msg("unchanged")
		return nil
	}
	if _, err := s.Secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update Secret %s: %w", s.Name, err)
	}
	s.Log.Info().Str("secret", s.Name).Strs("keys", changed).Msg("updated")
	return nil
}

// merge puts the contents into the Secret and returns the keys that changed.
func (s *Sync) merge(secret *corev1.Secret, contents map[string][]byte) (changed []string) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for _, key := range sorted(contents) {
		has, file := secret.Data[key], contents[key]
		if bytes.Equal(has, file) {
			continue
		}
		if why := keepReason(has, file); why != "" {
			s.Log.Warn().Str("secret", s.Name).Str("key", key).Msg("not written: " + why)
			continue
		}
		secret.Data[key] = file
		changed = append(changed, key)
	}
	return changed
}

// Every repeats Once until ctx ends. After a failure the next try comes earlier, after firstRetry and then twice as
// long each time.
func (s *Sync) Every(ctx context.Context, interval time.Duration) {
	wait := firstRetry
	for {
		pause := interval
		if err := s.Once(ctx); err != nil && ctx.Err() == nil {
			pause = min(wait, interval)
			s.Log.Error().Err(err).Dur("retry", pause).Msg("not synchronised")
			wait = min(2*wait, interval)
		} else {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

const firstRetry = 5 * time.Second

func sorted(contents map[string][]byte) []string { return slices.Sorted(maps.Keys(contents)) }
