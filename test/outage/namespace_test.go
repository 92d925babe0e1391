package outage

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

const outputService = "v1alpha1.output.htc.cern.ch"

// The deleted namespace has nothing to do with htcd.
func TestANamespaceIsDeletedWhileHTCdIsAway(t *testing.T) {
	o := begin(t)
	kubectl := func(ctx context.Context, input string, args ...string) string {
		out, err := o.Lab.RunInput(ctx, input, "kubectl", args...)
		require.NoError(t, err)
		return out
	}
	deleted := func(namespace string) {
		kubectl(t.Context(), "", "create", "namespace", namespace)
		kubectl(t.Context(), "", "delete", "namespace", namespace, "--wait=false")
	}
	gone := func(namespace string) bool {
		return kubectl(t.Context(), "", "get", "namespace", namespace, "--ignore-not-found") == ""
	}
	namespace := o.Namespace + "-unrelated"
	t.Cleanup(func() {
		kubectl(
			context.WithoutCancel(t.Context()),
			"",
			"delete",
			"namespace",
			namespace,
			"--ignore-not-found",
			"--wait=false",
		)
	})
	clone, err := lab.CloneAround(".")
	require.NoError(t, err)
	for _, dir := range []string{"base", "overlays/generic", "overlays/cern"} {
		require.NotContains(
			t,
			kubectl(t.Context(), "", "kustomize", filepath.Join(clone, "deploy", dir)),
			"kind: APIService",
			dir,
		)
	}
	var service struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
			Labels      map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	require.NoError(
		t,
		json.Unmarshal([]byte(kubectl(t.Context(), "", "get", "apiservice", outputService, "-o", "json")), &service),
	)
	again, err := json.Marshal(service)
	require.NoError(t, err)
	install := func(ctx context.Context) {
		if kubectl(ctx, "", "get", "apiservice", outputService, "--ignore-not-found") == "" {
			kubectl(ctx, string(again), "create", "-f", "-")
		}
	}
	t.Cleanup(func() { install(context.WithoutCancel(t.Context())) })

	// As in deploy/base.
	kubectl(t.Context(), "", "delete", "apiservice", outputService)
	o.do(o.part("htcd").Stop)
	deleted(namespace)
	o.Eventually(
		func() bool { return gone(namespace) },
		func() string { return kubectl(t.Context(), "", "get", "namespace", namespace, "-o", "yaml") },
	)

	// With deploy/components/output: what docs/troubleshoot.md says.
	install(t.Context())
	o.do(o.part("htcd").Start)
	available := func(is string) {
		kubectl(
			t.Context(),
			"",
			"wait",
			"--for=condition=Available="+is,
			"apiservice/"+outputService,
			"--timeout="+trial.Patience.String(),
		)
	}
	available("True")
	o.do(o.part("htcd").Stop)
	available("False")
	deleted(namespace)
	o.Eventually(func() bool {
		said := kubectl(t.Context(), "", "get", "namespace", namespace, "-o",
			`jsonpath={.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")]}`)
		return strings.Contains(said, `"status":"True"`) && strings.Contains(said, "output.htc.cern.ch")
	}, func() string { return kubectl(t.Context(), "", "get", "namespace", namespace, "-o", "yaml") })
	kubectl(t.Context(), "", "delete", "apiservice", outputService)
	o.Eventually(
		func() bool { return gone(namespace) },
		func() string { return kubectl(t.Context(), "", "get", "namespace", namespace, "-o", "yaml") },
	)
}
