// Renders a chart as Helm does: Go's templates with sprig's functions, and the few that Helm adds. Where Helm itself cannot be had
// (it is in no Debian 12), Debian's golang-go, golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev run this.
//
//	render CHART RELEASE VALUES   VALUES: JSON or YAML that overrides values.yaml
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := render(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart, release, overrides string) error {
	values, err := readYaml(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	given := map[string]interface{}{}
	if err := yaml.Unmarshal([]byte(overrides), &given); err != nil {
		return err
	}
	described, err := readYaml(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	input := map[string]interface{}{
		"Values":  merge(values, given),
		"Release": map[string]interface{}{"Name": release, "Namespace": "default"},
		"Chart":   map[string]interface{}{"Name": described["name"], "Version": described["version"], "AppVersion": described["appVersion"]},
	}

	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, about interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, about)
		return text.String(), err
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := all.New(file).Parse(string(text)); err != nil {
			return err
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".tpl") {
			continue
		}
		fmt.Printf("---\n# Source: %s\n", filepath.Base(file))
		if err := all.ExecuteTemplate(os.Stdout, file, input); err != nil {
			return err
		}
	}
	return nil
}

func readYaml(file string) (map[string]interface{}, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := map[string]interface{}{}
	return found, yaml.Unmarshal(text, &found)
}

// merge lays what is given over what stands there, map by map, as Helm does.
func merge(base, over map[string]interface{}) map[string]interface{} {
	for name, value := range over {
		inner, isMap := value.(map[string]interface{})
		known, wasMap := base[name].(map[string]interface{})
		if isMap && wasMap {
			base[name] = merge(known, inner)
		} else {
			base[name] = value
		}
	}
	return base
}
