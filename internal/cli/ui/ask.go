package ui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// resource is the one whose logs an object's are.
func (r ref) resource() string {
	if r.Kind == workflows {
		return v1alpha1.WorkflowResource
	}
	return v1alpha1.Resource
}

// lines asks htcd for a list about an object and calls each for its lines.
func lines[T any](
	ctx context.Context,
	s *Server,
	r ref,
	what string,
	parameters url.Values,
	each func(T),
) (http.Header, error) {
	answer, err := s.o.Output(ctx, r.Namespace, r.resource(), r.Name, what, parameters)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	for from := json.NewDecoder(answer.Body); ; {
		var one T
		err := from.Decode(&one)
		if errors.Is(err, io.EOF) {
			return answer.Header, nil
		}
		if err != nil {
			return nil, err
		}
		each(one)
	}
}

// all returns the lines.
func all[T any](
	ctx context.Context,
	s *Server,
	r ref,
	what string,
	parameters url.Values,
) (list []T, header http.Header, err error) {
	header, err = lines(ctx, s, r, what, parameters, func(one T) { list = append(list, one) })
	return list, header, err
}

func attemptIn(h http.Header) int {
	n, _ := strconv.Atoi(h.Get(aggregate.HeaderAttempt)) // else it is 0
	return n
}

// mostEvents is how many an object's page shows; the apiserver keeps them for an hour.
const mostEvents = 200

func (s *Server) events(ctx context.Context, r ref, object metav1.Object) ([]corev1.Event, error) {
	list, err := s.o.Events(
		ctx,
		r.Namespace,
		metav1.ListOptions{Limit: mostEvents, FieldSelector: "involvedObject.uid=" + string(object.GetUID())},
	)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// numberIn reads a parameter; otherwise is what it is when absent or no number from 0 on.
func numberIn(q url.Values, name string, otherwise int) int {
	n, err := strconv.ParseUint(q.Get(name), 10, 31)
	if err != nil {
		return otherwise
	}
	return int(n) // #nosec G115 -- 31 bits
}
