module example.com/go-webhookcfg/examples/admin

go 1.26.0

require example.com/go-webhookcfg v0.0.0

require golang.org/x/sync v0.24.0 // indirect

replace example.com/go-webhookcfg => ../..
