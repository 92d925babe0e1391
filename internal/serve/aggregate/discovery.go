package aggregate

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group that is served.
var GroupVersion = schema.GroupVersion{Group: "output.htc.cern.ch", Version: "v1alpha1"}

// The resources that have a log here. Without themselves in this group, kubectl still resolves these words to those of
// htc.cern.ch.
const (
	resourceJobs      = "htcjobs"
	resourceWorkflows = "htcworkflows"
	resourceHistory   = "history" // it is in no list of resources: what is there are lines, not objects
)

// discovery holds the documents by which the apiserver and its clients find out what is served. The apiserver also asks
// for a description of the types; an empty one keeps its log quiet.
func discovery() map[string]any {
	version := metav1.GroupVersionForDiscovery{GroupVersion: GroupVersion.String(), Version: GroupVersion.Version}
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:     GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	resources := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: GroupVersion.String(),
		APIResources: []metav1.APIResource{
			{Name: resourceJobs + "/log", Namespaced: true, Kind: "HTCJobLog", Verbs: metav1.Verbs{"get"}},
			{Name: resourceJobs + "/exec", Namespaced: true, Kind: "HTCJobExec", Verbs: metav1.Verbs{"create", "get"}},
			{Name: resourceWorkflows + "/log", Namespaced: true, Kind: "HTCWorkflowLog", Verbs: metav1.Verbs{"get"}},
			{
				Name:       resourceWorkflows + "/exec",
				Namespaced: true,
				Kind:       "HTCWorkflowExec",
				Verbs:      metav1.Verbs{"create", "get"},
			},
		},
	}
	listed := group
	listed.TypeMeta = metav1.TypeMeta{}
	return map[string]any{
		"/apis": metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   []metav1.APIGroup{listed},
		},
		"/apis/" + GroupVersion.Group:    group,
		"/apis/" + GroupVersion.String(): resources,
		"/openapi/v2": map[string]any{
			"swagger": "2.0",
			"info":    map[string]string{"title": "htcd", "version": "v1alpha1"},
			"paths":   map[string]any{},
		},
		"/openapi/v3": map[string]any{"paths": map[string]any{}},
	}
}

func serveDiscovery(mux *http.ServeMux) {
	for path, document := range discovery() {
		text, err := json.Marshal(document)
		if err != nil {
			panic(err) // they are constants
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text) // the client may have gone
		})
	}
}
