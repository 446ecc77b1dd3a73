local x = 
