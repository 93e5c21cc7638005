package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/testenv"
)

func TestThePrintedConfigurationHasADataFolderOfItsOwn(t *testing.T) {
	require.Equal(t, `export NEO4J_PASSWORD=x
cat > memhost.yaml <<'END'
memory:
  backend: graphiti
  backends:
    graphiti: {"url":"http://127.0.0.1:8881"}
secrets:
  neo4j: {env: NEO4J_PASSWORD, origin: "bolt://127.0.0.1:8883"}
data:
  dir: memhost-data/graphiti # a folder of its own: a slot that runs elsewhere is not meant
END
go run ./cmd/memhost run --config memhost.yaml
`, block(&testenv.Backend{Provider: "graphiti", Config: map[string]any{"url": "http://127.0.0.1:8881"},
		Secrets: map[string]testenv.Secret{"neo4j": {Variable: "NEO4J_PASSWORD", Value: "x",
			Origin: "bolt://127.0.0.1:8883"}}}))
}
