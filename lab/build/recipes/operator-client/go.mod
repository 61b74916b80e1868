// Stands for prometheus-operator's sub-module of generated code, which is not published as a Go
// module here: the recipe "operator-client" generates it from the published API types.
module github.com/prometheus-operator/prometheus-operator/pkg/client

go 1.26
