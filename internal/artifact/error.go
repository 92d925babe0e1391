package artifact

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// The reasons of an Unusable.
const (
	ReasonNotFound    = "ArtifactNotFound"
	ReasonForbidden   = "ArtifactForbidden"
	ReasonUnsuitable  = "ArtifactUnsuitable"
	ReasonUnreachable = "RegistryUnreachable"
	ReasonWaits       = "ArtifactWaits"
	ReasonLate        = "ArtifactLate"
	ReasonRefused     = "ArtifactRefused"
	ReasonNoPlace     = "RepositoryNotFound"
)

// Unusable is the error for an artifact that cannot be fetched, or pushed, now.
type Unusable struct {
	Reason, Message string
	silent          bool // the registry itself does not answer
}

func (e *Unusable) Error() string { return e.Message }

func unsuitable(format string, args ...any) error {
	return unusable(ReasonUnsuitable, format, args...)
}

func unusable(reason, format string, args ...any) *Unusable {
	return &Unusable{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// unreachable is the error of a registry that has not answered, or only that it cannot.
func unreachable(format string, args ...any) *Unusable {
	return &Unusable{Reason: ReasonUnreachable, Message: fmt.Sprintf(format, args...), silent: true}
}

// explain returns what an error of a registry means. Messages repeat neither a registry's own words nor addresses
// beyond a host: both may hold secrets or anything else.
func explain(err error, registry string) *Unusable {
	if e, is := errors.AsType[*Unusable](err); is {
		return e
	}
	if e, is := errors.AsType[*forbiddenHost](err); is {
		return unusable(ReasonForbidden, "the registry %s sends htcd to another host: %v", registry, e)
	}
	if e, is := errors.AsType[*errcode.ErrorResponse](err); is {
		switch e.StatusCode {
		case http.StatusNotFound:
			return notFound(registry)
		case http.StatusUnauthorized, http.StatusForbidden:
			return denied(registry)
		}
		return unreachable("the registry %s answers with status %d", registry, e.StatusCode)
	}
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return notFound(registry)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return denied(registry)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unreachable("the registry %s does not answer, or not in time", registry)
	}
	if e, is := errors.AsType[*url.Error](err); is { // its own text has the whole address
		return unreachable("the registry %s cannot be asked: %v", registry, e.Err)
	}
	return unusable(ReasonUnreachable, "the answer of the registry %s cannot be used", registry)
}

// explainPush is explain for an artifact that is pushed.
func explainPush(err error, registry string) *Unusable {
	if e, is := errors.AsType[*errcode.ErrorResponse](err); is {
		switch code := e.StatusCode; {
		case code == http.StatusUnauthorized, code == http.StatusForbidden:
			return pushDenied(registry)
		case code == http.StatusNotFound:
			return unusable(
				ReasonNoPlace,
				"the registry %s has no such repository, or does not show it to these credentials (spec.credentials, as: Registry): it may have to be created first",
				registry,
			)
		case refuses(code):
			return unusable(
				ReasonRefused,
				"the registry %s refuses it with status %d%s",
				registry,
				code,
				knownCodes(e.Errors),
			)
		}
	}
	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return pushDenied(registry)
	case strings.Contains(err.Error(), "is on a different host than the registry"):
		return unusable(
			ReasonForbidden,
			"the registry %s wants the files to be sent to another host, which htcd does not do",
			registry,
		)
	}
	return explain(err, registry)
}

// explainDelete is explain for an artifact that is deleted.
func explainDelete(err error, registry string) *Unusable {
	if e, is := errors.AsType[*errcode.ErrorResponse](err); is {
		switch code := e.StatusCode; {
		case code == http.StatusUnauthorized, code == http.StatusForbidden:
			return deleteDenied(registry)
		case refuses(code):
			return unusable(ReasonRefused, "the registry %s refuses to delete it with status %d", registry, code)
		}
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return deleteDenied(registry)
	}
	return explain(err, registry)
}

// refuses reports whether a status means that trying again is of no use.
func refuses(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

func isNotFound(err error) bool {
	e, is := errors.AsType[*errcode.ErrorResponse](err)
	return is && e.StatusCode == http.StatusNotFound
}

// knownCodes lists the errors of a registry by their codes, as far as the specification of registries has them.
func knownCodes(all errcode.Errors) string {
	known := []string{
		errcode.ErrorCodeBlobUploadInvalid,
		errcode.ErrorCodeDigestInvalid,
		errcode.ErrorCodeManifestBlobUnknown,
		errcode.ErrorCodeManifestInvalid,
		errcode.ErrorCodeNameInvalid,
		errcode.ErrorCodeNameUnknown,
		errcode.ErrorCodeSizeInvalid,
		errcode.ErrorCodeUnsupported,
		errcode.ErrorCodeDenied,
		"TAG_INVALID",
		"MANIFEST_UNVERIFIED",
	}
	for _, e := range all {
		if slices.Contains(known, e.Code) {
			return " (" + e.Code + ")"
		}
	}
	return ""
}

func pushDenied(registry string) *Unusable {
	return unusable(
		ReasonForbidden,
		"the registry %s does not let htcd push it: it needs credentials that may (spec.credentials, as: Registry), or others",
		registry,
	)
}

func deleteDenied(registry string) *Unusable {
	return unusable(
		ReasonForbidden,
		"the registry %s does not let htcd delete it: it needs credentials that may (spec.credentials, as: Registry), or others",
		registry,
	)
}

func notFound(registry string) *Unusable {
	return unusable(
		ReasonNotFound,
		"the registry %s has no such artifact, or shows it to nobody without credentials",
		registry,
	)
}

func denied(registry string) *Unusable {
	return unusable(
		ReasonForbidden,
		"the registry %s does not let htcd read it: it needs credentials (spec.credentials, as: Registry), or others",
		registry,
	)
}
