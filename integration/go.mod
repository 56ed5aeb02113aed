module example.com/go-webhookcfg/integration

go 1.26.0

require example.com/go-webhookcfg v0.0.0

require github.com/anishathalye/porcupine v1.3.1

replace example.com/go-webhookcfg => ../
