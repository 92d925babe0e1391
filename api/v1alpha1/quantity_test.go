package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// An object with a quantity that is none cannot be read, and then neither can the list it is in.
func TestEveryQuantityOfASpecHasAPatternOrARule(t *testing.T) {
	for _, file := range []string{"htcjobs", "htcpools", "htcworkflows"} {
		text, err := os.ReadFile("../../deploy/base/crd/htc.cern.ch_" + file + ".yaml")
		require.NoError(t, err)
		var crd unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal(text, &crd.Object))
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		schema, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
		require.NoError(t, err)
		require.Positive(t, guarded(t, file, schema), "%s has quantities", file)
	}
}

// guarded counts the quantities below a schema, and fails at one that anything may be in.
func guarded(t *testing.T, path string, schema map[string]any) (n int) {
	var rules strings.Builder
	list, _ := schema["x-kubernetes-validations"].([]any)
	for _, rule := range list {
		rules.WriteString(rule.(map[string]any)["rule"].(string) + "\n")
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		p := property.(map[string]any)
		if p["x-kubernetes-int-or-string"] == true && name != "proc" && name != "maxFailures" {
			n++
			require.True(
				t,
				p["pattern"] != nil || strings.Contains(rules.String(), "isQuantity(string(self."+name+"))"),
				"%s.%s",
				path,
				name,
			)
		}
		n += guarded(t, path+"."+name, p)
	}
	if items, is := schema["items"].(map[string]any); is {
		n += guarded(t, path+"[]", items)
	}
	return n
}
