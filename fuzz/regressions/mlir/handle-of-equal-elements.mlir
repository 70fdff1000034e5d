func.func @main() -> !corert.tensorhandle {
  %a = corert.create_dense_tensor.i32 {shape = [1099511627776], value = [1 : i32]}
  tfrt.return %a : !corert.tensorhandle
}
