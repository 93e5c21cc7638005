module example.com/cognee

go 1.26.0

require github.com/memhost/memhost v0.0.0

replace github.com/memhost/memhost => ../..
