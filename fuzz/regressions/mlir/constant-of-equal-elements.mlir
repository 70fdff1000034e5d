module attributes {heald.constants = [dense<7> : tensor<1099511627777xi32>]} {
}
