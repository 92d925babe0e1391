package artifact

import (
	"context"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// Delete deletes the manifest with a digest that Push has returned for a target. A tag that names another one by now
// stays. It is no error if the manifest is not there; otherwise that is an *Unusable, or the context's.
func (p *Pusher) Delete(ctx context.Context, target Target, digest string, dockerConfigs ...[]byte) error {
	repository, err := p.at(target, dockerConfigs)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, toResolve)
	defer cancel()
	if err := remove(limited, repository, digest); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at := repository.Reference.Registry
		return p.noted(target.Namespace, at, explainDelete(err, at))
	}
	return nil
}

// remove deletes a manifest, and then the tag of the repository's reference: there are registries that keep a manifest
// as long as a tag names it.
func remove(ctx context.Context, from *remote.Repository, digest string) error {
	tag := from.Reference.Reference
	if err := removeOne(ctx, from, digest); err != nil && !isNotFound(err) {
		return err
	}
	if there, err := from.Resolve(ctx, tag); err != nil || there.Digest.String() != digest {
		return nil // it is gone, as far as these credentials show
	}
	return removeOne(ctx, from, tag)
}

// removeOne sends one request.
func removeOne(ctx context.Context, from *remote.Repository, reference string) error {
	ctx = auth.AppendRepositoryScope(ctx, from.Reference, auth.ActionPull, auth.ActionDelete)
	at := url.URL{
		Scheme: "https",
		Host:   from.Reference.Host(),
		Path:   "/v2/" + from.Reference.Repository + "/manifests/" + reference,
	}
	if from.PlainHTTP {
		at.Scheme = "http"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, at.String(), nil)
	if err != nil {
		return err
	}
	answer, err := from.Client.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return &errcode.ErrorResponse{Method: request.Method, URL: request.URL, StatusCode: answer.StatusCode}
	}
	return nil
}
